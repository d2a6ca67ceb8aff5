{{ afterimage.change_activity() }}
